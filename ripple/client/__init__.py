"""Client: access to a cluster for people and programs outside of it.

outputs, sql   live outputs at consistent cuts; SQL over them
flight         Arrow Flight, Flight SQL and Barrage
dashboard      the web page of a cluster or a run
live           tables in notebooks, of outputs that change
"""
