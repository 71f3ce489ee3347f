"""Print what Ripple and the extras that are named need, a requirement a line."""

import sys
import tomllib

with open("pyproject.toml", "rb") as file:
    project = tomllib.load(file)["project"]
extras = project["optional-dependencies"]
print(*project["dependencies"], *(one for name in sys.argv[1:] for one in extras[name]), sep="\n")
