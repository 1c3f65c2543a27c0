"""Files on an SFTP server that topics are written to."""
