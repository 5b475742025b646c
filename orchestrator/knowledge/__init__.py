"""What runs read and keep: corpora, memory, files, drafts of letters."""
