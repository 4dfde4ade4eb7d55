"""Unnesters of lists whose entries are members: bibliographies, package lists."""
