"""Shared parts of the commands.

client_options        connecting to a cluster: addresses, certificates, tokens
config_context        ``ripple config context``
connector_template    the package that ``ripple connector new`` writes
contexts              named clusters, in the user's file
exits                 exit codes and error lines
left_out              outputs without a sink
number_options        numeric arguments
output_forms          text, JSON and S-expressions; tables and colours
path_options          arguments that are paths, URIs and addresses
pipeline_options      the pipeline's file, its sources and their markers
rejects               reports of rejected records
report_files          files that are written at the end
silence               which errors mean that a server does not answer
statistics            the statistics of a run
topic_rows            the rows that an output's topic adds up to
user_file             loading the user's pipeline file
validation_options    comparisons of a validation
without_pandas        starting without importing pandas
"""
