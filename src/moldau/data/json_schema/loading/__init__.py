"""From a document to the model: one loader for drafts 4 to 7, one for the later ones."""
