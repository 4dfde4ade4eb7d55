"""The fetch edge: answers fetch requests with records."""

from streams.fetch.adapters.local import fetch_local, reopened
from streams.fetch.answers import FetchError, StoreError
from streams.fetch.fetcher import Fetcher
from streams.fetch.settings import FetchSettings

__all__ = ["FetchError", "FetchSettings", "Fetcher", "StoreError", "fetch_local", "reopened"]
