/**
 * What an engine and the connector tell each other: the layout of its KV cache, requests, plans
 * of steps. Plain records without behaviour. They know no store.
 */
package ucm.pipeline.connector.engine;
