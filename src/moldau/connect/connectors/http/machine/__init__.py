"""What the HTTP connectors decide: bodies, addresses, where records are in an answer."""
