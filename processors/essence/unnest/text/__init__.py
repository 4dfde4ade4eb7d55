"""Unnesters of files encoded as text: mail, mailboxes, uuencode, shar, BinHex."""
