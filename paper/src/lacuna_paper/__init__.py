"""The paper, reproduced: its studies as data, run into one folder; its claims, judged; and a page to open."""
