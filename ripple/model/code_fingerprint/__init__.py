"""The form of a user's code: its operations and the values it reads, equal in every process.

form        the digest of a function and the values it reads, and the unseen parts
bytecode    the operations of a code, on any lines, and the names in it
names       the values of names: globals, attributes of modules, imports
objects     classes, and objects by their contents
data        plain values, arrays, Arrow's by their content
attributes  the plain attributes of an object
place       an object's path, as code would write it
owner       the owner of a module: the user, whose code is read, or a library, known by name
"""
