"""Print the requirements of Ripple and of the named extras, one a line."""

import re
import sys
import tomllib

with open("pyproject.toml", "rb") as file:
    project = tomllib.load(file)["project"]
extras = project["optional-dependencies"]
needed = dict.fromkeys(project["dependencies"])
asked = sys.argv[1:]
while asked:
    for one in extras[asked.pop(0)]:
        # An extra may name others of the same project, which pip would fetch as a release.
        if named := re.fullmatch(rf"{project['name']}\[(.+)\]", one):
            asked += named[1].split(",")
        else:
            needed[one] = None
print(*needed, sep="\n")
