"""Vendor-defined tools declared to another API: hosted tools (the provider runs them) and client-run tools.

`hosted` has one row for each kind of hosted tool and API; `client_run` the client-run tools, which become functions
cross-API; `convert_vendor_tools` converts the declarations of a request.
"""
