// A shared library made of static ones needs a source of its own.
