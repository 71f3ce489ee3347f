"""Kafka: places whose records are read and written in columns, and the transaction that commits.

place, settings     what users write; how brokers are got at (tokens, errors, refusals)
client, consumer    connections and who leads; records read ahead (memory: kept between fetches)
record_batches      what was fetched, as columns (decompression, headers), or refused_batches
registry            of schemas, as the settings name it
originals, retries  records kept whole beside dead letters; these written again, each once
inputs, source      of a life, of a plain run; dividing: by which hash of keys
rows, row_values, row_writing, batch_writing, batches   changes as records, as bytes
producer, cuts, group   transactions; the record in each; a partition's outputs, committed by it
alone, patience     answers not to be believed; what fails is done again, for a time
whose, written, reading_back    of which partition; what goes where; which keys readers have
broker, reader      the broker port, live
private, private_connecting, private_topics, private_writing    all that is private of aiokafka
"""
