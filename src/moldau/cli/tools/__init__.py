"""One module per tool: `add_arguments(parser)` and `run(arguments)`. The catalogue names them."""
