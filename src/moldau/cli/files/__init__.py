"""Commands that read the files of a broker without the broker."""
