"""The demo company: a shop with orders, a refund policy, payments, mail and a ledger, in its own process.

It stands for the world outside: it imports nothing of Interlock, and Interlock imports nothing of it.
"""
