/**
 * Configurations of LMCache and RTP-LLM turned into ours. Their text goes in, our YAML and what
 * it could not take over come out. It opens no store.
 */
package ucm.pipeline.convert;
