"""What `moldau up` decides: which services run with which words, and when one is started again."""
