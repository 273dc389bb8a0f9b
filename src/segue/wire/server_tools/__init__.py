"""Tools that an API itself defines, declared to another: those that its provider runs, and those that its client runs.

`rows` has the first kind, one row for each kind of tool and API; `client_run` the second, which abroad are functions;
`declare` puts them to use.
"""
