"""The fetch edge: requests in, what became of them out."""

from streams.fetch.adapters.local import fetch_local
from streams.fetch.answers import StoreError
from streams.fetch.fetcher import Fetcher
from streams.fetch.settings import FetchSettings

__all__ = ["FetchSettings", "Fetcher", "StoreError", "fetch_local"]
