"""Networks: the only room that knows timm."""
