-- Several nodes: which folder of files they share, and which of them can lead partitions.

-- The mark that lies in the folder of files, once there is one: a node with another folder would not find what the others keep.
ALTER TABLE ops.log_identity ADD COLUMN files uuid;

-- When the process last reached the log for deciding; whoever does shares the partitions with the others who do.
ALTER TABLE ops.nodes ADD COLUMN leads_at timestamptz;
