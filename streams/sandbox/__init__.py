"""A pool of sandboxed children, in which hostile input is parsed. Parents import `pool` (asyncio) or `plain` (synchronous).

This file imports nothing on purpose: the forkserver and its children load the package too, and need none of the parent's half.
"""
