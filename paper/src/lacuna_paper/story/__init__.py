"""The idea as a story of eight scenes, on one offline page: `lacuna explain`."""
