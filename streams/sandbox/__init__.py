"""A pool of sandboxed child processes that parse hostile input. Parents import `pool` (asyncio) or `plain` (synchronous).

This file imports nothing on purpose: the forkserver and its children load the package too, and do not need the parent's half.
"""
