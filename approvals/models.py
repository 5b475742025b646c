"""Tables of approvals."""
