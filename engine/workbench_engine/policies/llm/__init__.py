"""A language model as a policy: contrastive prompts, what is read out of the answers, patches, repair."""
