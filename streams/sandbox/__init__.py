"""A pool of sandboxed child processes that parse hostile input.

Parents import `pool` (asyncio), `plain` (synchronous) or `shared` (synchronous, for several threads).

This file imports nothing on purpose: the forkserver and its children load the package too, and do not need the parent's half.
"""
