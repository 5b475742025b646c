"""The demo company: a shop with orders, payments, mail, running services and documents, in its own process.

It stands for the world outside: it imports nothing of Interlock, and Interlock imports nothing of it.
"""
