"""What calls will cost and may cost: tokens, prices, budgets, and which steps are worth the money."""
