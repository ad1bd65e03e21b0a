"""What every generated file begins with."""


def keyspace(name):
    """Statements that make a keyspace and use it; the names of corpus keyspaces begin with cf_."""
    return [f"CREATE KEYSPACE {name} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}};", f'USE {name};', '']
