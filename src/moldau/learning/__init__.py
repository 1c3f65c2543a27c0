"""The guided course of `moldau learn`: exercises as data, services that they need, and checks."""
