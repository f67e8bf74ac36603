"""How a policy learns: contrastive exemplars, advantages, GRPO."""
