"""HDFS: topics as files, through WebHDFS."""
