"""SGLang's side of UCM."""
