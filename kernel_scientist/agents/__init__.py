"""The Model Context Protocol server: `kernel-scientist mcp` offers the laboratory to the agents of others.

server      FastMCP over stdio or HTTP; bad input is one sentence
tools       what a model may call, with the descriptions that it reads;  resources  what it may read
process     a child process that does the work and is killed when a call is cancelled
child       its loop;  work  one kernel;  campaigns  a campaign whose kernels an agent writes;  history  the records
beside      the server at the side of a campaign's own agent
withheld    held-out cases never leave
"""
