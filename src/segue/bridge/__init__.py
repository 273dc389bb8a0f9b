"""One HTTP exchange between a caller of one API and a provider of another, without IO."""
