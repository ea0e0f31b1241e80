"""Results for people: tables, pages, servers."""
