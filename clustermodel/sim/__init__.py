"""The mechanism: SimPy processes and resources that carry out a policy's decisions.  Only this folder imports simpy."""
