"""The shell of `moldau sql`: statements in, tables out."""
