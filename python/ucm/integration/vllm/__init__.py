"""The connector of vLLM: ``ucm_connector.UCMConnector``."""
