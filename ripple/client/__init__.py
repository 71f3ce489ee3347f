"""Client: what people and programs outside of a cluster use to see it.

outputs, sql   live outputs at stated cuts; SQL over them
flight         Arrow Flight, Flight SQL and Barrage
dashboard      the page, for a run and for a cluster
"""
