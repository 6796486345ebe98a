scaled_scores = 5
