"""The form of a user's code: what a step does and what it reads, the same in every process.

form        goes through a function and what it reads; the digest, and what cannot be seen
bytecode    what a code does, whichever lines it stands on, and the names in it
names       what the names stand for: globals, attributes of modules, imports
objects     classes, and objects by what they hold
data        plain values, arrays, Arrow's by their content
attributes  the plain attributes of an object
place       an object's path, as code would write it
owner       the owner of a module: the user, whose code is read, or a library, known by name
"""
