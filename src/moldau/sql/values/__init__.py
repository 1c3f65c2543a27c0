"""Values of SQL's types: casts, coercions, comparisons, arithmetic, texts.

Everything is decided once, by types, and gives back a plain function of values. Only where a
function says so does it take None: the caller decides what NULL means in its place.
"""
