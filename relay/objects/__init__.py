"""Objects and what becomes of them: health, merges, storing; pure, and no node's business."""
