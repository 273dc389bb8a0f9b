from tests.store.conftest import server

__all__ = ["server"]
