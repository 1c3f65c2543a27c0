"""What the Splunk sink decides: events, the requests they go into, acknowledgements."""
