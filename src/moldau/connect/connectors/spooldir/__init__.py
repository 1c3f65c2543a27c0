"""Spool directory: files that appear in a directory, or on an SFTP or FTP server, as records."""
