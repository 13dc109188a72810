"""Minds: scripted and language-model agents, their persona and memory, and the engines that speak for them."""
