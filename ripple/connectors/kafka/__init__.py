"""Kafka: topics that are read and written in columns, and commits by transactions.

connector, uri, settings    of users; tokens; error_mapping, errors: of brokers
client, consumer    connections and leaders; read-ahead (memory: reused between fetches); growth
record_batches      fetched batches as columns (decompression, headers), or refused_batches
registry            of schemas, by the settings
originals, retries  originals of dead letters; their records written again, each once
inputs              of a durable run, of a one-shot run; partitioner_check; source_opening
rows, row_values, row_writing, batch_writing, batches   changes as records, as bytes
row_collections, varint     lists and maps in rows; integers of variable length
producer, cuts, group   transactions; cut records; commits of a partition's outputs; sink
single_writer, retry_policy     checks of brokers' answers; repeated requests
group_partition, topic_target, reading_back    owner and targets of a group; readers' keys
broker, reader      the broker port, live; lane_home; sink_opening
private, private_connecting, private_topics, private_writing    aiokafka's undocumented parts
"""
