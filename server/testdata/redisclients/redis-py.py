# python redis-py.py URL ID [option=number ...]: a draw and a group.
import sys

import redis

options = {name: int(value) for name, value in (word.split("=") for word in sys.argv[3:])}
c = redis.Redis.from_url(sys.argv[1], **options)
print("draw", c.execute_command("DRAW", "ann", "free", "ID", sys.argv[2]))
group = c.pipeline(transaction=True)
group.execute_command("GRANT", "ann", "gem", "1", "ID", sys.argv[2] + "-group")
group.execute_command("DRAW", "ann", "free")
print("group", group.execute())
c.close()
